/** Options of `steadfast cluster`. An array repeats an option. */
export interface ClusterOptions {
  nodes?: number;
  bucket?: string | string[];
  replicas?: number;
  vbuckets?: number;
  scope?: string | string[];
  /** `[SCOPE.]NAME` */
  collection?: string | string[];
  /** `NAME:PASSWORD[:ROLES]` */
  user?: string | string[];
  /** Documents by key, or `[BUCKET[/SCOPE/COLLECTION]=]FILE`. */
  load?: Record<string, unknown> | string | string[];
  tls?: boolean;
  seed?: number;
  journal?: number;
  [option: string]: unknown;
}

/** How fast a rebalance moves documents. */
export interface Pace {
  /** False returns at once, while documents move. */
  wait?: boolean;
  vbuckets_per_step?: number;
  pause_ms?: number;
}

/** The requests that a fault hits, and values for its effect. */
export interface FaultCondition {
  opcode?: string;
  key?: string;
  key_prefix?: string;
  bucket?: string;
  service?: 'kv' | 'mgmt' | 'query' | 'analytics' | 'search' | 'views';
  node?: number;
  skip?: number;
  times?: number;
  probability?: number;
  seed?: number;
  status?: string;
  body?: string;
  context?: string;
  delay_ms?: number;
  garble?: 'magic' | 'opaque' | 'length' | 'body';
}

export type Effect =
  | 'pass' | 'delay' | 'delay-answer' | 'answer' | 'hold' | 'cut-before-reading'
  | 'cut-before-applying' | 'cut-after-applying' | 'cut-mid-response' | 'garble' | 'silent' | 'mute';

/** One applied write. */
export interface Write {
  sequence: number;
  node: number;
  bucket: string;
  collection: number;
  key: string;
  operation: string;
  cas: string;
}

export class ControlError extends Error {}

export class Fault {
  /** How many requests it has hit. */
  fired(): Promise<number>;
  remove(): Promise<void>;
}

export class Cluster {
  static start(options?: ClusterOptions): Promise<Cluster>;
  readonly connectionString: string;
  readonly tlsConnectionString: string | null;
  readonly authority: string | null;
  readonly username: string;
  readonly password: string;
  readonly bucket: string;
  /** All that the cluster printed at its start. */
  readonly facts: Record<string, unknown>;
  stop(): Promise<void>;
  fault(effect: Effect, condition?: FaultCondition): Promise<Fault>;
  withFault(
    effect: Effect,
    condition: FaultCondition,
    action: (fault: Fault) => unknown,
  ): Promise<Fault>;
  writes(key?: string): Promise<Write[]>;
  rebalanceIn(pace?: Pace): Promise<number>;
  rebalanceOut(node: number, pace?: Pace): Promise<void>;
  rebalance(pace?: Pace): Promise<void>;
  isRebalancing(): Promise<boolean>;
  crash(node: number): Promise<void>;
  restart(node: number): Promise<void>;
  failOver(node: number): Promise<void>;
  recover(node: number): Promise<void>;
  advanceClock(seconds: number): Promise<void>;
  call(method: string, path: string, body?: unknown): Promise<any>;
}

/** The hooks of a test runner. */
export interface Hooks {
  beforeEach(hook: () => Promise<void>): unknown;
  afterEach(hook: () => Promise<void>): unknown;
}

export function startCluster(options?: ClusterOptions): Promise<Cluster>;

/** Starts a cluster before each test and stops it afterwards. */
export function useCluster(options?: ClusterOptions, hooks?: Hooks): () => Cluster;
