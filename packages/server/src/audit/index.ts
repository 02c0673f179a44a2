export { FindingsNews } from './news.js'
export { FindingsWebhook } from './webhook.js'
