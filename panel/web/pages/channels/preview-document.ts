/**
 * A mail as a document for a frame of ours. The frame inherits the page's policy, which lets in styles with the page's nonce
 * alone, and mails have their styles in attributes: each becomes a rule of one style element.
 */
export function previewDocument(html: string): string {
  const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";
  // Nothing of it runs or is loaded; the policy counts while it is parsed, too.
  const mail = new DOMParser().parseFromString(withoutStyles(html, nonce), "text/html");
  const rules = [...mail.querySelectorAll("[data-style]")].map((element, at) => {
    const style = element.getAttribute("data-style") ?? "";
    element.setAttribute("data-style", String(at));
    // As strong as an id, so that it wins over the mail's own rules as the attribute did.
    return `:is([data-style="${at}"], #none) { ${style} }`;
  });
  const inline = mail.createElement("style");
  inline.setAttribute("nonce", nonce);
  inline.textContent = rules.join("\n");
  mail.head.append(inline);
  return `<!doctype html>${mail.documentElement.outerHTML}`;
}

/** Style attributes under another name, style elements with the nonce. */
function withoutStyles(html: string, nonce: string): string {
  return html.replace(/<[a-z][^<>]*>/gi, (tag) =>
    tag
      .replace(/(\s)style(\s*=)/gi, "$1data-style$2")
      .replace(/^<style\b/i, `<style nonce="${nonce}"`),
  );
}
