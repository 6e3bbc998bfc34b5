import type { Mechanism } from "./metricdp.js";

export interface ProtectedGeolocation {
  getCurrentPosition(
    success: (position: any) => void,
    failure?: (error: { code: number; message: string }) => void,
    options?: object,
  ): void;
  watchPosition(
    success: (position: any) => void,
    failure?: (error: { code: number; message: string }) => void,
    options?: object,
  ): number;
  clearWatch(id: number): void;
  /** What was handed out today. */
  spent(): { reports: number; refused: number; perDay: number; epsilon: number; accuracy: number };
}

/** A stand-in for navigator.geolocation that hands out one protected position per time window. */
export function protectGeolocation(
  mechanism: Mechanism,
  options?: {
    geolocation?: { getCurrentPosition: Function };
    storage?: { getItem(name: string): string | null; setItem(name: string, value: string): void };
    everySeconds?: number;
    perDay?: number;
    snap?: number;
    now?: () => number;
  },
): ProtectedGeolocation;
