// The application under test: a shop that stores orders.
import couchbase from 'couchbase';

const { DocumentExistsError, RequestCanceledError, TimeoutError } = couchbase;

/**
 * Stores an order once, also if an answer is lost.
 *
 * An insert may fail after it was applied. It is safe to repeat: then the order exists.
 */
export async function placeOrder(orders, key, order) {
  let last;
  for (let attempt = 0; attempt < 5; attempt++) {
    try {
      await orders.insert(key, order);
      return;
    } catch (error) {
      if (error instanceof DocumentExistsError) return;
      if (!(error instanceof TimeoutError || error instanceof RequestCanceledError)) throw error;
      last = error;
    }
  }
  throw last;
}

/** The status of an order, or "unknown" if the database is too slow. */
export async function statusOf(orders, key, timeout) {
  try {
    return (await orders.get(key, { timeout })).content.status;
  } catch (error) {
    if (error instanceof TimeoutError) return 'unknown';
    throw error;
  }
}
