import { EXIT, type Run } from './command.js'
import { number, withHoldfast } from './tool.js'

export const rebuild: Run = async (given, terminal) => {
  const { config } = given
  const report = await withHoldfast(given, terminal, ({ hf, signal, progress }) =>
    hf.rebuild({
      ...(config.shard !== undefined && { shards: [config.shard] }),
      usedWithin: config.usedWithinMs as number,
      all: config.all ?? false,
      force: config.force ?? false,
      signal,
      onProgress: ({ done, of, wallets, loaded }) =>
        progress(
          () => `${done} of ${of} shards, ${number(wallets)} wallets looked at, ${number(loaded)} loaded so far`,
        ),
    }),
  )
  const { shards, wallets, loaded, there, failed, durationMs } = report
  if (config.json) terminal.print(JSON.stringify(report))
  else {
    terminal.print(
      `${number(shards.length)} shards, ${number(wallets)} wallets looked at: ${number(loaded)} loaded, ${number(there)} were there, ` +
        `${number(failed)} failed, in ${(durationMs / 1000).toFixed(1)} s`,
    )
  }
  return failed === 0 ? EXIT.ok : EXIT.failed
}
