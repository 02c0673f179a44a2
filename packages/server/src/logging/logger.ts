import { type DestinationStream, destination, type Logger, pino } from 'pino'
import { redact, redactText } from './redact.js'

/** Standard error by default: standard output belongs to what a command answers. */
export function createLogger(level: string, stream: DestinationStream = destination({ fd: 2, sync: true })): Logger {
  return pino(
    {
      level,
      base: null,
      messageKey: 'event',
      timestamp: pino.stdTimeFunctions.isoTime,
      // As the last step of every line, so that no caller has to think of it.
      formatters: {
        level: (label) => ({ level: label }),
        log: (line) => redact(line) as Record<string, unknown>,
        bindings: (bindings) => redact(bindings) as Record<string, unknown>,
      },
      serializers: { err: (error) => error },
      hooks: {
        logMethod(args, method) {
          const scrubbed = args.map((arg) => (typeof arg === 'string' ? redactText(arg) : arg))
          method.apply(this, scrubbed as Parameters<typeof method>)
        },
      },
    },
    stream,
  )
}
