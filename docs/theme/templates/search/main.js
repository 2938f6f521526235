// The site's search, in the place of mkdocs' own, which reads its index in a way that a browser forbids to pages opened
// from a disk. Here the index is a script, fetched when somebody first searches. A section is found when it holds every
// word, anywhere; those with the words in their heading come first.
"use strict";

(function () {
    const MOST_SHOWN = 30;
    const ROUND_A_HIT = 90; // characters of text on each side
    const HEADING_COUNTS = 20; // as many words of text
    let sections = null;

    function load(then) {
        if (sections) {
            then();
            return;
        }
        const script = document.createElement("script");
        script.src = base_url + "/search/search_index.js";
        script.onload = function () {
            // An entry without `#` is a whole page, which its sections tell of again.
            const pages = {};
            window.searchIndex.docs.forEach(function (doc) { pages[doc.location] = doc.title; });
            sections = window.searchIndex.docs
                .filter(function (doc) { return doc.location.includes("#"); })
                .map(function (doc) {
                    const page = pages[doc.location.split("#")[0]];
                    const title = page === doc.title ? page : page + ": " + doc.title;
                    const text = doc.text.replace(/\s+/g, " ");
                    return { location: doc.location, title: title, text: text, inTitle: title.toLowerCase(),
                             inText: text.toLowerCase() };
                });
            then();
        };
        document.head.appendChild(script);
    }

    function score(section, words) {
        let sum = 0;
        for (const word of words) {
            const found = section.inText.split(word).length - 1;
            const heading = section.inTitle.includes(word) ? HEADING_COUNTS : 0;
            if (found + heading === 0) {
                return 0;
            }
            sum += Math.log2(1 + found) + heading;
        }
        return sum;
    }

    function excerpt(section, words) {
        const hits = words.map(function (word) { return section.inText.indexOf(word); });
        const first = Math.min(...hits.filter(function (hit) { return hit >= 0; }), section.text.length);
        const from = Math.max(0, (first === section.text.length ? 0 : first) - ROUND_A_HIT);
        return (from ? "... " : "") + section.text.slice(from, from + 2 * ROUND_A_HIT) + " ...";
    }

    function show(results, words) {
        const place = document.getElementById("mkdocs-search-results");
        place.replaceChildren();
        for (const section of results) {
            const article = place.appendChild(document.createElement("article"));
            const link = article.appendChild(document.createElement("h3")).appendChild(document.createElement("a"));
            link.href = base_url + "/" + section.location;
            link.textContent = section.title;
            article.appendChild(document.createElement("p")).textContent = excerpt(section, words);
        }
        if (!results.length && words.length) {
            place.appendChild(document.createElement("p")).textContent = "No section holds all of these words.";
        }
    }

    function search() {
        const typed = document.getElementById("mkdocs-search-query").value.toLowerCase();
        const words = typed.split(/\s+/).filter(function (word) { return word.length > 1; });
        const found = sections
            .map(function (section) { return [words.length ? score(section, words) : 0, section]; })
            .filter(function (pair) { return pair[0] > 0; })
            .sort(function (one, other) { return other[0] - one[0]; });
        show(found.slice(0, MOST_SHOWN).map(function (pair) { return pair[1]; }), words);
    }

    document.addEventListener("DOMContentLoaded", function () {
        const field = document.getElementById("mkdocs-search-query");
        field.form.addEventListener("submit", function (event) { event.preventDefault(); });
        field.addEventListener("input", function () { load(search); });
        const asked = new URLSearchParams(window.location.search).get("q");
        if (asked) {
            field.value = asked;
            load(search);
        }
    });
})();
