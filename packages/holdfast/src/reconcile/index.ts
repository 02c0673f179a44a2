export {
  type LostEntry,
  type Reconcilable,
  type ReconcileOptions,
  type ReconcileParts,
  type ReconcileReport,
  reconcile,
  type WalletAhead,
} from './reconcile.js'
