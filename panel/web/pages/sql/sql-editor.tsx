/** The statement's editor: a chunk of its own. */
import { sql } from "@codemirror/lang-sql";
import { useComputedColorScheme } from "@mantine/core";
import CodeMirror, { EditorView, keymap, Prec } from "@uiw/react-codemirror";
import { getNonce } from "get-nonce";
import { useMemo } from "react";

/** The dark theme's own ground is too light for its red. */
const GROUND = EditorView.theme({
  "&": { fontSize: "14px" },
  "&.cm-editor": { backgroundColor: "light-dark(white, var(--mantine-color-dark-8))" },
  "& .cm-gutters": { backgroundColor: "transparent", color: "var(--mantine-color-dimmed)" },
});

interface SqlEditorProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly onRun: () => void;
}

export function SqlEditor({ label, value, onChange, onRun }: SqlEditorProps) {
  const scheme = useComputedColorScheme("light");
  const extensions = useMemo(
    () => [
      sql(),
      EditorView.lineWrapping,
      GROUND,
      EditorView.contentAttributes.of({ "aria-label": label }),
      EditorView.cspNonce.of(getNonce() ?? ""),
    ],
    [label],
  );
  const keys = useMemo(
    () =>
      Prec.highest(
        keymap.of([
          {
            key: "Mod-Enter",
            run: () => {
              onRun();
              return true;
            },
          },
        ]),
      ),
    [onRun],
  );
  return (
    <CodeMirror
      value={value}
      onChange={onChange}
      extensions={[...extensions, keys]}
      theme={scheme}
      minHeight="160px"
      basicSetup={{
        foldGutter: false,
        highlightActiveLine: false,
        highlightActiveLineGutter: false,
      }}
      indentWithTab={false}
    />
  );
}
