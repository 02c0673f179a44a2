export { FindingsWebhook } from './webhook.js'
