export { EventHub, type EventSettings } from './hub.js'
export { chosenEvents, type Subscription, toldOf } from './subscription.js'
