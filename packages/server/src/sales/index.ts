export { ScheduleDriver } from './schedule-driver.js'
export { type SaleSettings, saleOptionsOf } from './settings.js'
