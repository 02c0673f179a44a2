import { type Definition, from } from '../command.js'

const sales = () => import('./sales.js')
const schedules = () => import('./schedules.js')

export const SALE_COMMANDS: readonly Definition[] = [
  {
    name: 'sale open',
    description: 'make a sale and fill it. The same again changes nothing',
    run: from(sales, (one) => one.open),
  },
  {
    name: 'sale status',
    description: 'what can be had, what lies in checkouts, what is sold',
    run: from(sales, (one) => one.status),
  },
  { name: 'sale list', description: 'sales in the order of their ids', run: from(sales, (one) => one.list) },
  { name: 'sale items', description: 'its items, and what is left of each', run: from(sales, (one) => one.items) },
  {
    name: 'sale attempts',
    description: 'what was tried in it, refused or not, in the order of its time',
    run: from(sales, (one) => one.attempts),
  },
  {
    name: 'sale checkout',
    description: "set items aside for a user, in the user's running checkout or in a new one",
    run: from(sales, (one) => one.checkOut),
  },
  { name: 'sale running', description: "a user's running checkout", run: from(sales, (one) => one.running) },
  { name: 'sale code', description: 'how the checkout of a code stands', run: from(sales, (one) => one.code) },
  {
    name: 'sale purchase',
    description: 'buy what is in a checkout, and pay for it with a wallet if wanted. Again: the first answer',
    run: from(sales, (one) => one.purchase),
  },
  {
    name: 'sale cancel',
    description: 'give back what is in a checkout',
    run: from(sales, (one) => one.cancel),
  },
  {
    name: 'sale close',
    description: 'take no more checkouts. What is in one can be bought until it runs out',
    run: from(sales, (one) => one.close),
  },
  {
    name: 'sale watch',
    description: 'how it goes, live, until the sale is over or Ctrl-C',
    run: from(
      () => import('./watch.js'),
      (module) => module.watch,
    ),
  },
  {
    name: 'sale repeat',
    description:
      'have a sale in every slot of time, such as every hour. The same again changes nothing; otherwise it holds from the next slot on',
    run: from(schedules, (one) => one.repeat),
  },
  {
    name: 'sale schedules',
    description: 'schedules of sales in the order of their ids',
    run: from(schedules, (one) => one.schedules),
  },
  {
    name: 'sale schedule',
    description: 'a schedule as it is on record',
    run: from(schedules, (one) => one.schedule),
  },
  {
    name: 'sale slots',
    description: 'what was opened of a schedule, the latest first',
    run: from(schedules, (one) => one.slots),
  },
  {
    name: 'sale current',
    description: 'the sale of a schedule that is running now',
    run: from(schedules, (one) => one.saleAt('current')),
  },
  {
    name: 'sale next',
    description: 'the one that comes after it, if it is open already',
    run: from(schedules, (one) => one.saleAt('next')),
  },
  {
    name: 'sale pause',
    description: 'open no more sales of a schedule. What is open stays open',
    run: from(schedules, (one) => one.halt('pause')),
  },
  {
    name: 'sale resume',
    description: 'open sales of it again. Slots that have passed meanwhile are left out',
    run: from(schedules, (one) => one.halt('resume')),
  },
]
