// Keeps what is marked on a page as new as the daemons are. Without it a page is as old as its time says.
"use strict";
(() => {
  const place = document.getElementById("live");
  if (!place || !window.EventSource) return;
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-pressed", "false");
  button.textContent = "Pause updates";
  place.append(button);
  let paused = false;
  let busy = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
  });

  // What somebody reads with the keyboard stays as it is until he leaves it.
  const isUsed = (part) => part.contains(document.activeElement) || !document.getSelection().isCollapsed;

  const renew = async () => {
    if (paused || busy || document.hidden) return;
    busy = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
      if (answer.status === 401) return location.reload();
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const next = page.getElementById(part.id);
        if (!next || isUsed(part) || part.innerHTML === next.innerHTML) continue;
        const open = part.querySelector("details[open]") !== null;
        part.replaceChildren(...document.importNode(next, true).childNodes);
        if (open) part.querySelector("details")?.setAttribute("open", "");
      }
    } catch {
      // The console is gone for a moment; the line of events comes again by itself.
    } finally {
      busy = false;
    }
  };

  // A page that nobody sees takes no place from others; one that was refused asks again, once it may
  // have been signed in or there is room.
  let news = null;
  const listen = () => {
    if (document.hidden || (news && news.readyState !== EventSource.CLOSED)) return;
    news = new EventSource("/news");
    news.addEventListener("news", renew);
    news.addEventListener("error", () => {
      if (news.readyState !== EventSource.CLOSED) return;
      renew();
      setTimeout(listen, 30000);
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return news?.close();
    listen();
    renew();
  });
  addEventListener("pagehide", () => news?.close());
  addEventListener("pageshow", listen);
  listen();
})();
