/** The control panel's application: providers around the router. */
import "./app.css";
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { createRoot } from "react-dom/client";
import { TextProvider } from "./i18n/text.tsx";
import { queries } from "./queries.ts";
import { router } from "./router.tsx";
import { cssVariables, theme } from "./theme.ts";

/** The policy of the page lets in only styles that carry the nonce of its own answer. */
const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";
// Of the style by which an open dialogue keeps the page behind it from scrolling.
setNonce(nonce);

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <Notifications position="top-right" />
      <TextProvider>
        <QueryClientProvider client={queries}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </TextProvider>
    </MantineProvider>,
  );
}
