export { protectGeolocation } from "./metricdp.js";
