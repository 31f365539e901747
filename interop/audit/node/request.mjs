// The request that the audit asks for.
import { readFileSync } from 'node:fs';

const { AUDIT_URL, AUDIT_METHOD, AUDIT_KEY, AUDIT_FILE } = process.env;
export const url = AUDIT_URL;
export const method = AUDIT_METHOD;
export const headers = AUDIT_KEY ? { 'Idempotency-Key': AUDIT_KEY } : {};
export const body = method === 'GET' ? undefined : readFileSync(AUDIT_FILE);
