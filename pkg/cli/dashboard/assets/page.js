"use strict";

// What the pages do in the browser: they follow the dashboard, load the rows of a long table as they are scrolled to, and have keys.
(() => {
	Idiomorph.defaults.ignoreActiveValue = true; // what is being typed is not replaced
	const main = () => document.getElementById("main");
	const table = () => document.getElementById("table");

	// A page that is not shown has no stream: browsers have six connections for a host, and each page would take one.
	let stream = null, stale = false, busy = false;
	const connection = (state, text) => {
		const line = document.getElementById("connection");
		line.dataset.state = state;
		line.textContent = text;
	};
	const update = () => {
		if (!main().hasAttribute("data-live")) {
			return;
		}
		if (busy) {
			stale = true;
			return;
		}
		busy = true;
		stale = false;
		htmx.ajax("GET", here(), {target: "#main", select: "#main", swap: "morph:outerHTML"}).catch(() => {}).finally(() => {
			busy = false;
			if (stale) {
				update();
			}
		});
	};
	const follow = () => {
		if (stream !== null) {
			stream.close();
			stream = null;
		}
		if (document.hidden) {
			return;
		}
		stream = new EventSource("events?" + (main().dataset.topic || ""));
		let was = "";
		stream.addEventListener("open", () => {
			connection("live", "live");
			if (was === "lost") {
				update(); // what changed meanwhile
			}
			was = "live";
		});
		stream.addEventListener("error", () => {
			was = "lost";
			connection("lost", "The dashboard does not answer: run the command again if it has ended.");
		});
		stream.addEventListener("update", update);
	};

	// here is the address of the page with the first row of the window.
	const here = (first) => {
		const address = new URL(location.href), of = table();
		const from = first ?? (of ? Number(of.dataset.from) : 0);
		address.searchParams.delete("from");
		if (from > 0) {
			address.searchParams.set("from", from);
		}
		return address.pathname + address.search;
	};

	// The rows of the window lie between two spacers, which have the height of those that are not loaded.
	let rowHeight = 0;
	const spacer = (rows, place, count) => {
		const at = place === "afterbegin" ? rows.firstElementChild : rows.lastElementChild;
		let row = at && at.classList.contains("spacer") && at.dataset.place === place ? at : null;
		if (row === null) {
			row = document.createElement("tr");
			row.className = "spacer";
			row.dataset.place = place;
			row.setAttribute("aria-hidden", "true");
			row.appendChild(document.createElement("td"));
			rows.insertAdjacentElement(place, row);
		}
		row.style.height = count * rowHeight + "px";
	};
	const layOut = () => {
		const of = table(), rows = document.getElementById("rows");
		if (!of || !rows) {
			return;
		}
		const loaded = rows.querySelectorAll("tr:not(.spacer)");
		if (loaded.length === 0) {
			return;
		}
		rowHeight = loaded[0].getBoundingClientRect().height || rowHeight;
		const from = Number(of.dataset.from), total = Number(of.dataset.total);
		spacer(rows, "afterbegin", from);
		spacer(rows, "beforeend", total - from - loaded.length);
	};
	let loading = false;
	const scrolled = () => {
		const of = table();
		if (!of || loading || rowHeight === 0) {
			return;
		}
		const size = Number(of.dataset.window), total = Number(of.dataset.total), from = Number(of.dataset.from);
		const first = Math.floor(of.scrollTop / rowHeight), last = Math.ceil((of.scrollTop + of.clientHeight) / rowHeight);
		const margin = 5;
		if ((first - margin >= from || from === 0) && (last + margin <= from + size || from + size >= total)) {
			return;
		}
		loading = true;
		const middle = Math.floor((first + last) / 2);
		const begin = Math.max(0, Math.min(total - size, middle - Math.floor(size / 2)));
		htmx.ajax("GET", here(begin), {target: "#table", select: "#table", swap: "morph:outerHTML"}).catch(() => {}).finally(() => {
			loading = false;
			scrolled();
		});
	};

	document.addEventListener("htmx:afterSwap", layOut);
	document.addEventListener("htmx:afterSettle", (event) => {
		if (event.detail.requestConfig?.elt.matches("form.filter") && table()) {
			table().scrollTop = 0;
		}
		layOut();
		scrolled();
	});
	document.addEventListener("htmx:responseError", (event) => {
		if (event.detail.xhr.status === 401) {
			location.reload(); // that page has what to do
		} else {
			connection("lost", "The control plane does not answer: what is shown may be old.");
		}
	});
	document.addEventListener("htmx:afterOnLoad", (event) => {
		if (event.detail.xhr.status < 400) {
			connection("live", "live");
		}
	});
	document.addEventListener("scroll", (event) => {
		if (event.target === table()) {
			requestAnimationFrame(scrolled);
		}
	}, true);
	document.addEventListener("visibilitychange", () => {
		if (!document.hidden) {
			update();
		}
		follow();
	});
	window.addEventListener("pageshow", (event) => event.persisted && follow());
	window.addEventListener("pagehide", () => stream !== null && stream.close());

	// A file that is dropped is that of the form.
	for (const name of ["dragover", "dragleave", "drop"]) {
		document.addEventListener(name, (event) => {
			const drop = document.getElementById("drop");
			if (!drop) {
				return;
			}
			event.preventDefault();
			drop.classList.toggle("over", name === "dragover");
			if (name === "drop" && event.dataTransfer.files.length > 0) {
				document.getElementById("file").files = event.dataTransfer.files;
			}
		});
	}

	const pages = {o: "./", p: "policies", l: "plan"};
	document.addEventListener("keydown", (event) => {
		if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) {
			return;
		}
		if (event.key === "/" && document.getElementById("q")) {
			event.preventDefault();
			document.getElementById("q").focus();
		} else if (Object.hasOwn(pages, event.key)) {
			location.assign(pages[event.key]);
		}
	});

	layOut();
	follow();
})();
