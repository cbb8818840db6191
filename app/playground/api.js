// Calls to the server this page came from.

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const key = {
  get: () => sessionStorage.getItem("key") ?? "",
  set: (value) => sessionStorage.setItem("key", value.trim()),
};

async function send(method, path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "the server does not answer");
  }
  if (!response.ok) {
    const told = await response.json().catch(() => ({}));
    throw new ApiError(response.status, told.error?.message ?? `${response.status} ${response.statusText}`);
  }
  return response;
}

export async function call(method, path, body) {
  return (await send(method, path, body)).json();
}

// The events of a streamed answer, as they come.
export async function* events(path, body, signal) {
  const response = await send("POST", path, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, "the connection broke");
    });
    if (done) break;
    buffer += value;
    const parts = buffer.split("\n\n");
    buffer = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new ApiError(event.error.code ?? 500, event.error.message);
      yield event;
    }
  }
  throw new ApiError(0, "the answer broke off");
}
