/** Something that happened to a design. */
export interface ServiceEvent {
  id: string;
  event: "waiting" | "running" | "progress" | "done" | "failed" | "cancelled";
  data: Record<string, unknown>;
}

/** The service gave nothing: `status` and `error` are for programs, the message is its sentence. */
export declare class ServiceError extends Error {
  readonly status: number;
  readonly error: string;
  readonly details: Record<string, unknown>;
}

/** A new request id, for one release: the same one again gives the stored report and costs nothing. */
export declare function requestId(): string;

export interface ServiceOptions {
  /** How often a request is sent that got no answer or found the service busy; 5 unless said. */
  tries?: number;
  /** How long to wait for one answer, in seconds; 30 unless said. */
  seconds?: number;
  /** Another `fetch`, for tests. */
  fetch?: typeof fetch;
}

/**
 * A service at an address, asked with a key. A request that got no answer, or found the service busy, is sent again as
 * it was: with its request id, so that nothing is charged twice.
 */
export declare class ServiceClient {
  constructor(url: string, token: string, options?: ServiceOptions);

  // operations
}
