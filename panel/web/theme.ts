/** Colours and defaults of the components. Text on every ground has the contrast that WCAG AA asks for, in both modes. */
import {
  type CSSVariablesResolver,
  createTheme,
  DEFAULT_THEME,
  type MantineColor,
  type MantineThemeComponents,
} from "@mantine/core";

const COLOURS = Object.keys(DEFAULT_THEME.colors).filter(
  (name) => name !== "dark",
) as MantineColor[];

const components: MantineThemeComponents = {
  Anchor: { defaultProps: { underline: "always" } },
  Badge: { defaultProps: { variant: "light", radius: "sm", tt: "none", fw: 600 } },
  Button: { defaultProps: { size: "sm" } },
  Card: { defaultProps: { withBorder: true, radius: "md", padding: "lg" } },
  Modal: { defaultProps: { centered: true, radius: "md" } },
  Paper: { defaultProps: { radius: "md" } },
  Table: { defaultProps: { verticalSpacing: "xs", horizontalSpacing: "sm" } },
};

export const theme = createTheme({
  primaryColor: "indigo",
  primaryShade: 7,
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  fontFamily: "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
  headings: { fontWeight: "650" },
  components,
});

/** The default grey of secondary text and the default tones of light badges are too faint on their grounds. */
export const cssVariables: CSSVariablesResolver = ({ colors }) => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": colors.gray[7],
    "--mantine-color-placeholder": colors.gray[7],
    "--mantine-color-anchor": colors.indigo[8],
    "--mantine-color-error": colors.red[9],
    ...Object.fromEntries(
      COLOURS.map((name) => [`--mantine-color-${name}-light-color`, darkest(colors[name]?.[9])]),
    ),
  },
  dark: {
    "--mantine-color-dimmed": colors.dark[1],
    "--mantine-color-placeholder": colors.dark[1],
    "--mantine-color-anchor": colors.indigo[3],
    "--mantine-color-error": colors.red[4],
    ...Object.fromEntries(
      COLOURS.map((name) => [`--mantine-color-${name}-light-color`, colors[name]?.[2] ?? ""]),
    ),
  },
});

function darkest(colour = "black"): string {
  return `color-mix(in srgb, ${colour} 60%, black)`;
}
