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
  caOut?: string;
  bind?: string;
  host?: string;
  usualPorts?: boolean;
  controlPort?: number;
  controlBind?: string;
  outliveParent?: boolean;
  maxConcurrentCommands?: number;
  schedule?: string;
  version?: string;
}

/** How fast a rebalance moves documents. */
export interface Pace {
  /** False returns at once, while documents move. */
  wait?: boolean;
  vbucketsPerStep?: number;
  pauseMs?: number;
}

/** The requests that a fault hits, and values for its effect. */
export interface FaultCondition {
  opcode?: Opcode;
  key?: string;
  keyPrefix?: string;
  bucket?: string;
  service?: 'kv' | 'mgmt' | 'query' | 'analytics' | 'search' | 'views';
  node?: number;
  skip?: number;
  times?: number;
  probability?: number;
  seed?: number;
  /** For kv a name or a number such as `0x86`, for other services an HTTP status. */
  status?: string | number;
  body?: string;
  context?: string;
  delayMs?: number;
  garble?: 'magic' | 'opaque' | 'length' | 'body';
}

/** A command: the name that SDKs have for it, that of the protocol, or its number. */
export type Opcode =
  | 'INSERT' | 'UPSERT' | 'REMOVE' | 'GET_AND_LOCK' | 'GET_AND_TOUCH' | 'UNLOCK' | 'LOOKUP_IN'
  | 'MUTATE_IN' | 'GET' | 'SET' | 'ADD' | 'REPLACE' | 'DELETE' | 'INCREMENT' | 'DECREMENT'
  | 'QUIT' | 'NOOP' | 'VERSION' | 'APPEND' | 'PREPEND' | 'STAT' | 'TOUCH' | 'GAT' | 'HELLO'
  | 'SASL_LIST_MECHS' | 'SASL_AUTH' | 'SASL_STEP' | 'GETEX' | 'GETEX_REPLICA' | 'GET_REPLICA'
  | 'SELECT_BUCKET' | 'OBSERVE_SEQNO' | 'OBSERVE' | 'GET_LOCKED' | 'UNLOCK_KEY' | 'GET_META'
  | 'GET_CLUSTER_CONFIG' | 'GET_RANDOM_KEY' | 'COLLECTIONS_GET_MANIFEST' | 'COLLECTIONS_GET_ID'
  | 'COLLECTIONS_GET_SCOPE_ID' | 'SUBDOC_GET' | 'SUBDOC_EXISTS' | 'SUBDOC_DICT_ADD'
  | 'SUBDOC_DICT_UPSERT' | 'SUBDOC_DELETE' | 'SUBDOC_REPLACE' | 'SUBDOC_ARRAY_PUSH_LAST'
  | 'SUBDOC_ARRAY_PUSH_FIRST' | 'SUBDOC_ARRAY_INSERT' | 'SUBDOC_ARRAY_ADD_UNIQUE'
  | 'SUBDOC_COUNTER' | 'SUBDOC_MULTI_LOOKUP' | 'SUBDOC_MULTI_MUTATION' | 'SUBDOC_GET_COUNT'
  | 'SUBDOC_REPLACE_BODY_WITH_XATTR' | 'RANGE_SCAN_CREATE' | 'RANGE_SCAN_CONTINUE'
  | 'RANGE_SCAN_CANCEL' | 'GET_ERROR_MAP' | 'CLUSTERMAP_CHANGE_NOTIFICATION'
  | `0x${string}`;

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
