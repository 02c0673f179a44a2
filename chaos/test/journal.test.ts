import { Holdfast } from 'holdfast'
import { expect, it } from 'vitest'
import { findUnrest } from '../journal.js'
import { Place } from '../places.js'

it('nothing is at rest while a hold is open, though nothing is left in it', async () => {
  const place = await Place.start('single')
  const postgres = await place.newDatabase()
  const holdfast = await Holdfast.connect({ redis: place.direct, postgres })
  try {
    const wallet = holdfast.wallet('w')
    await wallet.open({ currency: 'usd' })
    await wallet.credit(10, { key: 'funds' })
    const hold = await wallet.hold(10, { key: 'all of it', ttl: 60_000 })
    await hold.capture(10, { key: 'captured' })
    expect(await wallet.get()).toMatchObject({ available: 0, reserved: 0 })
    expect(await findUnrest(postgres)).toEqual(['w: all of it is still open'])
    await hold.release({ key: 'ended' })
    expect(await findUnrest(postgres)).toEqual([])
  } finally {
    await holdfast.close()
    await place.stop()
  }
})
