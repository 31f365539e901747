// got with its usual retries.
import got from 'got';
import { body, headers, method, url } from './request.mjs';

await got(url, { method, headers, body, timeout: { request: 2000 } });
