export { FindingsNews } from './news.js'
export { type AuditRequest, RequestedAudits } from './requested.js'
export { FindingsWebhook } from './webhook.js'
