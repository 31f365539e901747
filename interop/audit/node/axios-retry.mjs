// axios with axios-retry and its usual condition.
import axios from 'axios';
import axiosRetry from 'axios-retry';
import { body, headers, method, url } from './request.mjs';

axiosRetry(axios, { retries: 3, retryDelay: axiosRetry.exponentialDelay });
await axios({ url, method, headers, data: body, timeout: 2000 });
