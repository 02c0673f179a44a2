import { type DestinationStream, type Logger, pino } from 'pino'
import { redact, redactText } from './redact.js'
import { turnStream } from './turn-stream.js'

/**
 * Standard error by default: standard output belongs to what a command answers.
 *
 * Redaction sits where every line passes, so that no caller has to think of it: facts by their names on the way in, and the
 * finished line once more for what looks like a credential, whatever it stands in.
 */
export function createLogger(level: string, stream: DestinationStream = turnStream()): Logger {
  const logger = pino(
    {
      level,
      base: null,
      messageKey: 'event',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: (facts) => redact(facts) as Record<string, unknown>,
      },
      // Errors are plain by then; pino's own serializer would unfold their causes.
      serializers: { err: (error) => error },
      hooks: { streamWrite: redactText },
    },
    stream,
  )
  // What a child carries passes no formatter in pino. Children inherit this, and theirs too.
  const { child } = logger
  logger.child = function (this: Logger, facts, options) {
    return child.call(this, redact(facts) as typeof facts, options)
  } as typeof logger.child
  return logger
}
