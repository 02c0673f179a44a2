export { EventHub, type EventSettings } from './hub.js'
export { chosenEvents, type Subscription } from './subscription.js'
