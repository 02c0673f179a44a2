export { command } from './command.js'
export { decide } from './decide.js'
export { entryEnd, genesisHash, hashEntry, hasNumbers, isWhole, packEntry, REMEMBERED, unpackEntry } from './entry.js'
export { isShort, readMeter, usedBy } from './meter.js'
export { isSale, markRef } from './ref.js'
export { apply } from './replay.js'
export {
  applyStock,
  type Buyer,
  type Checkout,
  type CheckoutOrder,
  checkoutWords,
  emptyStock,
  LINES_MAX,
  type Line,
  lineWords,
  type Move,
  moveWords,
  type Payment,
  type PurchaseOrder,
  priceOf,
  purchaseWords,
  readCheckout,
  readLines,
  readLinesText,
  readPurchase,
  type Stock,
  type StockEntry,
  takenOf,
} from './stock.js'
export * from './types.js'
