export { planDay, protectGeolocation } from "./metricdp.js";
