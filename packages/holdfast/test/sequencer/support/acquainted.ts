import type { Place } from '../../../src/redis/index.js'
import {
  type Batch,
  type BatchReply,
  type Installation,
  type InstallReply,
  type Knowledge,
  Sequencer,
} from '../../../src/sequencer/index.js'

/** A sequencer that knows its server: who asks through it need not say which life of it the deadlines are about. */
export class AcquaintedSequencer extends Sequencer {
  override async decide(batch: Omit<Batch, 'life'>): Promise<BatchReply> {
    return super.decide({ ...batch, life: await this.#lifeAt((batch.wallets[0] as Knowledge).place) })
  }

  override async install(
    asker: string,
    { recent = [], ...installation }: Omit<Installation, 'life' | 'recent'> & Partial<Pick<Installation, 'recent'>>,
  ): Promise<InstallReply> {
    return super.install(asker, { ...installation, recent, life: await this.#lifeAt(installation.place) })
  }

  async #lifeAt(place: Place): Promise<string> {
    return (await this.look(place, 0, 'test', 0)).life
  }
}
