/* Asking the service, and what can go wrong with it, as kinds of faults. Only this module calls `fetch`; addresses are
   relative, so no request leaves the machine that served the page. Not about showing faults. */

const TOKEN = "bridgehead.token";

export class Fault extends Error {
  /* kind: "network", "token", "busy", "late", "refused" or "broken". */
  constructor(kind, message, { type = "", retryAfter = null } = {}) {
    super(message);
    Object.assign(this, { kind, type, retryAfter });
  }
}

// Kept for this tab of the browser alone, never on disk.
export const token = {
  get: () => {
    try {
      return sessionStorage.getItem(TOKEN) ?? "";
    } catch {
      return token.unkept ?? "";
    }
  },
  set: (value) => {
    token.unkept = value;
    try {
      sessionStorage.setItem(TOKEN, value);
    } catch {
      /* this page only */
    }
  },
  drop: () => {
    token.unkept = "";
    try {
      sessionStorage.removeItem(TOKEN);
    } catch {
      /* nothing was kept */
    }
  },
};

function kindOf(status) {
  if (status === 401 || status === 403) return "token";
  if (status === 429 || status === 503) return "busy";
  if (status === 504 || status === 408) return "late";
  return status >= 400 && status < 500 ? "refused" : "broken";
}

async function answered(path, { body, signal } = {}) {
  const headers = { Accept: "application/json" };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const asked = { method: body === undefined ? "GET" : "POST", headers, signal, credentials: "same-origin" };
  if (body !== undefined) asked.body = JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, asked);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Fault("network", "the service does not answer");
  }
  return response;
}

async function faultOf(response) {
  let said = {};
  try {
    said = (await response.json()).error ?? {};
  } catch {
    // A proxy or a broken service may answer with anything.
  }
  const seconds = Number(response.headers.get("Retry-After"));
  const retryAfter = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 60) : null;
  const message =
    typeof said.message === "string" ? said.message : `the service answered with status ${response.status}`;
  return new Fault(kindOf(response.status), message, { type: String(said.type ?? ""), retryAfter });
}

/* The JSON that the service answers with; raises `Fault`, or AbortError when `signal` was aborted. */
export async function ask(path, options = {}) {
  const response = await answered(path, options);
  if (!response.ok) throw await faultOf(response);
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Fault("broken", "the service's answer is not JSON");
  }
}

const quoted = (id) => encodeURIComponent(id);
export const depictPath = (id, of) => `depict/${quoted(id)}?of=${quoted(of)}`;
export const itemPath = (id, of) => `items/${quoted(id)}?of=${quoted(of)}`;

/* Set the picture of an item. An image cannot send a token: with one, the drawing is fetched and put in as data. */
export async function showPicture(image, id, of) {
  const path = depictPath(id, of);
  if (!token.get()) {
    image.src = path;
    return;
  }
  try {
    const response = await answered(path);
    if (!response.ok) throw await faultOf(response);
    image.src = `data:image/svg+xml;charset=utf-8,${quoted(await response.text())}`;
  } catch {
    image.dispatchEvent(new Event("error"));
  }
}
