import type { components } from "./generated/carrier.js";

export type ShipmentRequest = components["schemas"]["ShipmentRequest"];

// order is the smallest shipment.
export const order: ShipmentRequest = {
  reference: "order-1001",
  service: "standard",
  from: { name: "Ada Books", line1: "1 Main Street", city: "Istanbul", postalCode: "34000", country: "TR" },
  to: { name: "Deniz Kaya", line1: "12 Park Avenue", city: "Ankara", postalCode: "06000", country: "TR" },
  parcels: [{ weight: { value: 1.2, unit: "kg" } }],
};
