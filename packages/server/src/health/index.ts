export { type Check, type CheckResult, Readiness, type ReadinessReport } from './readiness.js'
