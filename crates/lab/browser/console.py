"""Reads every page of the console in Chromium: LINK AXE PICTURES PATH...

An empty AXE judges nothing: then only first paints are measured, each of a page that nobody asked for lately."""
import base64, json, os, subprocess, sys, time, urllib.request

# For longer than the console remembers what a daemon said.
STALE_S = 2.5

link, axe_file, pictures, *paths = sys.argv[1:]
os.makedirs(os.environ["HOME"], exist_ok=True)
axe = open(axe_file).read() if axe_file else ""
driver = subprocess.Popen(["chromedriver", "--port=9515"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request("http://127.0.0.1:9515" + path, data, headers, method=method)
    return json.load(urllib.request.urlopen(request, timeout=120))["value"]


def ready():
    try:
        return call("GET", "/status")["ready"]
    except OSError:
        return False


end = time.time() + 60
while not ready() and time.time() < end:
    time.sleep(0.2)
options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                    "--window-size=1280,1000"]}
logging = {"goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": options, "browserName": "chrome"}
found = 0
session = "/session/" + call("POST", "/session", {"capabilities": {"alwaysMatch": logging}})["sessionId"]
try:
    run = lambda text: call("POST", session + "/execute/sync", {"script": text, "args": []})
    go = lambda url: call("POST", session + "/url", {"url": url})

    def judged():
        run(axe)
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        script = ("const done = arguments[0]; "
                  "axe.run({runOnly: %s}).then(r => done(r.violations), e => done([String(e)]));")
        return call("POST", session + "/execute/async", {"script": script % json.dumps(tags), "args": []})

    def painted():
        """Milliseconds to the first paint, which may come after the page's end."""
        end = time.time() + 10
        while time.time() < end:
            paint = run("return performance.getEntriesByType('paint').map(p => p.startTime)[0] || 0")
            if paint:
                return paint
            time.sleep(0.05)
        raise SystemExit("nothing was painted")

    go(link)
    button = call("POST", session + "/element", {"using": "css selector", "value": "button.main"})
    call("POST", session + "/element/" + list(button.values())[0] + "/click", {})
    base = link.split("/sign-in")[0]
    end = time.time() + 20
    while run("return document.querySelectorAll('header nav a').length") == 0 and time.time() < end:
        time.sleep(0.2)
    if run("return document.querySelectorAll('header nav a').length") == 0:
        print("nobody was signed in:", run("return document.body.innerText"))
        sys.exit(1)
    for scheme in ["light", "dark"]:
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        call("POST", session + "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": media})
        for path in paths:
            if not axe:
                time.sleep(STALE_S)
            go(base + path)
            violations = judged() if axe else []
            found += len(violations)
            paint = painted()
            print(f"{scheme} {path}: {len(violations)} violations, first paint {paint:.0f} ms")
            for one in violations:
                nodes = [] if isinstance(one, str) else [node["html"][:200] for node in one["nodes"][:3]]
                print(" ", one if isinstance(one, str) else (one["id"], nodes))
            if pictures:
                name = os.path.join(pictures, f"{path.strip('/') or 'overview'}-{scheme}.png")
                open(name, "wb").write(base64.b64decode(call("GET", session + "/screenshot")))
    # The keyboard alone: the first key leads to the link over the navigation, and that to the content.
    go(base + "/")
    for key in ["\ue004", "\ue007"]:
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        call("POST", session + "/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]})
    if run("return location.hash + document.activeElement.id") != "#mainmain":
        print("the keyboard does not lead to the content")
        found += 1
    if not run("return document.querySelector('#live button') !== null"):
        print("the script did not run")
        found += 1
    for line in call("POST", session + "/se/log", {"type": "browser"}):
        if "Content Security Policy" in line["message"] or "SyntaxError" in line["message"]:
            print("browser:", line["message"])
            found += 1
finally:
    call("DELETE", session)
    driver.terminate()
    driver.wait()
sys.exit(found > 0)
