export { EventHub, type EventSettings } from './hub.js'
export { chosenEvents, type Subscription, toldOf, wantsSales } from './subscription.js'
