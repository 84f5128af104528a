"""What an answer does to the page that shows it, asked of the page in a browser."""

# what a page has in sight that is no text of an answer, where such a text is over it
COVERED = """
() => [...document.querySelectorAll('.panel-heading, .panel-heading :is(a, input), button')]
    .filter((part) => part.getClientRects().length && !part.closest('.rendered_html'))
    .flatMap((part) => {
        part.scrollIntoView({ block: 'center' });
        const box = part.getBoundingClientRect();
        const over = [0.02, 0.5, 0.98].map((share) =>
            document.elementFromPoint(box.left + share * box.width, box.top + box.height / 2));
        return over.filter((one) => one && one.closest('.rendered_html')).map(() => part.outerHTML);
    })
"""
# looks and names that an answer brings along
BORROWED = """
() => [...document.querySelectorAll('.rendered_html *')]
    .filter((one) => one.id || one.className || one.getAttribute('name') || one.matches('input'))
    .map((one) => one.outerHTML)
"""
