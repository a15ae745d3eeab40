// SPDX-License-Identifier: Apache-2.0

// The page as the server made it is complete. This module keeps it current, and adds the filter while one types, keys, and
// buttons that copy. It makes elements from the server's own answers alone, which the one policy below admits.
const policy = window.trustedTypes?.createPolicy("muster", { createHTML: (html) => html }) ?? { createHTML: (html) => html };
const body = document.body;
const main = document.getElementById("main");
const live = document.getElementById("live");
const most = 2000; // lines of a log that are kept

// morph makes the node `now` like `next`, and leaves alone what is equal, so that focus, selection and open details stay.
function morph(now, next) {
	if (now.nodeType !== next.nodeType || now.nodeName !== next.nodeName || now.id !== next.id) {
		now.replaceWith(next);
		return;
	}
	if (now.nodeType !== Node.ELEMENT_NODE) {
		if (now.data !== next.data) now.data = next.data;
		return;
	}
	if (now.hasAttribute("data-keep") || now.isEqualNode(next)) return;
	for (const { name, value } of next.attributes) if (now.getAttribute(name) !== value) now.setAttribute(name, value);
	for (const { name } of [...now.attributes]) {
		if (!next.hasAttribute(name) && !(name === "open" && now.nodeName === "DETAILS")) now.removeAttribute(name);
	}
	morphChildren(now, next);
}

function drop(node) {
	const following = node.nextSibling;
	node.remove();
	return following;
}

// morphChildren pairs children by their ids, and others in their order. It moves no child whose place is right, since a
// move takes the focus away.
function morphChildren(now, next) {
	const all = [...next.childNodes];
	const stays = new Set(all.map((child) => child.id).filter(Boolean));
	const known = new Map();
	for (const child of [...now.children]) {
		if (!child.id) continue;
		if (stays.has(child.id)) known.set(child.id, child);
		else child.remove();
	}
	let at = now.firstChild;
	for (const wanted of all) {
		const same = wanted.id ? known.get(wanted.id) : undefined;
		if (same) {
			while (at && at !== same && !at.id) at = drop(at);
			if (same === at) at = at.nextSibling;
			else now.insertBefore(same, at);
			morph(same, wanted);
		} else if (at && !at.id && !wanted.id && at.nodeName === wanted.nodeName) {
			const following = at.nextSibling;
			morph(at, wanted);
			at = following;
		} else {
			now.insertBefore(wanted, at);
		}
	}
	while (at) at = drop(at);
}

// The stream of events, which a page in the background does without.
let stream, retry;

function say(state, text) {
	live.className = "live " + state;
	document.getElementById("live-text").textContent = text;
}

function connect() {
	stream?.close();
	clearTimeout(retry);
	if (document.hidden || !body.dataset.view) return;
	const query = new URLSearchParams({ view: body.dataset.view, shown: body.dataset.shown });
	const logs = document.getElementById("logs");
	if (logs) query.set("logs", logs.childElementCount ? "on" : "new");
	stream = new EventSource("/events?" + query);
	stream.addEventListener("view", (event) => {
		const { html, shown } = JSON.parse(event.data);
		const parsed = document.createElement("template");
		parsed.innerHTML = policy.createHTML(html);
		morphChildren(main, parsed.content);
		body.dataset.shown = shown;
	});
	stream.addEventListener("beat", (event) => say("on", event.data));
	stream.addEventListener("log", (event) => append(JSON.parse(event.data)));
	stream.addEventListener("end", (event) => {
		stream.close();
		say("off", event.data);
	});
	stream.onerror = () => {
		stream.close();
		say("off", "the console does not answer");
		retry = setTimeout(connect, 3000);
	};
}

function append(lines) {
	const logs = document.getElementById("logs");
	if (!logs) return;
	const atEnd = logs.scrollHeight - logs.scrollTop - logs.clientHeight < 40;
	const added = document.createDocumentFragment();
	for (const line of lines) added.append(Object.assign(document.createElement("div"), { textContent: line }));
	logs.append(added);
	while (logs.childElementCount > most) logs.firstElementChild.remove();
	if (atEnd) logs.scrollTop = logs.scrollHeight;
}

document.addEventListener("visibilitychange", () => (document.hidden ? stream?.close() : connect()));
window.addEventListener("pagehide", () => stream?.close());
window.addEventListener("pageshow", (event) => event.persisted && connect());

// The filter asks the server, whose address with the same text shows the same page.
let typing;
document.addEventListener("input", (event) => {
	if (event.target.id !== "filter") return;
	clearTimeout(typing);
	typing = setTimeout(() => {
		const address = new URL(location.pathname, location);
		if (event.target.value) address.searchParams.set("q", event.target.value);
		history.replaceState(null, "", address);
		body.dataset.view = address.pathname + address.search;
		connect();
	}, 120);
});

async function copy(text, button) {
	try {
		await navigator.clipboard.writeText(text);
		document.getElementById("said").textContent = "Copied: " + text;
	} catch {
		document.getElementById("said").textContent = "The browser does not let the page copy.";
		return;
	}
	if (!button) return;
	button.classList.add("copied");
	button.textContent = "Copied";
	setTimeout(() => {
		button.classList.remove("copied");
		button.textContent = "Copy";
	}, 1500);
}

function copyCommand(button) {
	if (button) copy(button.dataset.copy, button);
}

document.addEventListener("click", (event) => {
	const button = event.target.closest(".copy");
	copyCommand(button);
	if (event.target.closest("#keys")) document.getElementById("help").showModal();
});

// Keys.
const pages = { o: "/", c: "/certificates", a: "/access", u: "/changes", l: "/logs" };
if (document.querySelector('nav a[href="/new"]')) pages.n = "/new";
let going = false; // whether the key before was g

function step(by) {
	const items = [...document.querySelectorAll("main [data-item]")];
	if (!items.length) return;
	const at = items.indexOf(document.activeElement);
	items[Math.min(items.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : items.length - 1) : at + by))].focus();
}

// stepInMap goes to the machine above or below.
function stepInMap(from, down) {
	const box = from.getBoundingClientRect();
	let best, least = Infinity;
	for (const item of document.querySelectorAll(".map .m")) {
		const other = item.getBoundingClientRect();
		const dy = (other.top - box.top) * (down ? 1 : -1);
		const distance = dy * 4 + Math.abs(other.left - box.left);
		if (dy > 4 && distance < least) [best, least] = [item, distance];
	}
	best?.focus();
}

// A query of logs runs by Ctrl and Enter, and a mistake in it is selected. The server counts code points.
const query = document.getElementById("query");
if (query?.dataset.start) {
	const units = (points) => [...query.value].slice(0, points).join("").length;
	query.focus();
	query.setSelectionRange(units(+query.dataset.start), units(+query.dataset.end));
}
document.getElementById("since")?.addEventListener("change", () => {
	for (const id of ["start", "end"]) document.getElementById(id).value = "";
});
query?.addEventListener("keydown", (event) => {
	if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
	event.preventDefault();
	query.form.requestSubmit();
});

// The form of a new cluster is shown as texts while one types. The address is that of the form, and the newest answer counts.
const form = document.getElementById("new");
let shown = 0;
async function show() {
	const asked = ++shown;
	const address = "/new?" + new URLSearchParams(new FormData(form));
	let html;
	try {
		const answer = await fetch(address);
		if (!answer.ok) throw new Error(answer.status);
		html = await answer.text();
	} catch {
		say("off", "the console does not answer");
		return;
	}
	if (asked !== shown) return;
	history.replaceState(null, "", address);
	const parsed = new DOMParser().parseFromString(policy.createHTML(html), "text/html");
	for (const id of ["texts", "new"]) {
		const next = parsed.getElementById(id);
		if (next) morph(document.getElementById(id), document.importNode(next, true));
	}
}
form?.addEventListener("input", () => {
	clearTimeout(typing);
	typing = setTimeout(show, 250);
});
// What waits for the cluster is asked for again. A person who changes the form decides.
if (form?.dataset.again) {
	const again = setTimeout(() => form.requestSubmit(document.getElementById("create")), 3000);
	form.addEventListener("input", () => clearTimeout(again));
}

document.addEventListener("keydown", (event) => {
	if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
	const { target, key } = event;
	if (target.matches("input, textarea, select")) {
		if (key === "Escape") target.blur();
		return;
	}
	const inMap = target.closest?.(".map .m");
	if (inMap && key.startsWith("Arrow")) {
		event.preventDefault();
		if (key === "ArrowRight" || key === "ArrowLeft") step(key === "ArrowRight" ? 1 : -1);
		else stepInMap(inMap, key === "ArrowDown");
		return;
	}
	if (going && pages[key]) {
		location.href = pages[key];
		return;
	}
	going = key === "g";
	switch (key) {
		case "/":
			event.preventDefault();
			(document.getElementById("filter") ?? document.getElementById("query"))?.focus();
			break;
		case "j":
			step(1);
			break;
		case "k":
			step(-1);
			break;
		case "y":
			copyCommand(document.querySelector(".title .copy, #same .copy"));
			break;
		case "?":
			document.getElementById("help").showModal();
			break;
	}
});

connect();
