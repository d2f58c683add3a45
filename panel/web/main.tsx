/** The control panel's application: providers around the router. */
import "./app.css";
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { createRoot } from "react-dom/client";
import { loadWords, TextProvider, type Words } from "./i18n/text.tsx";
import { queries } from "./queries.ts";
import { router } from "./router.tsx";
import { cssVariables, theme } from "./theme.ts";

/** The policy of the page lets in only styles that carry the nonce of its own answer. */
const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";
// Of the style by which an open dialogue keeps the page behind it from scrolling.
setNonce(nonce);

const root = document.getElementById("root");
// No `await` out here: the bundler would then cut the entry into a file for every set of pages that share something.
if (root) void loadWords().then((words) => show(root, words));

function show(root: HTMLElement, words: Words): void {
  createRoot(root).render(
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <Notifications position="top-right" />
      <TextProvider first={words}>
        <QueryClientProvider client={queries}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </TextProvider>
    </MantineProvider>,
  );
}
