import js from "@eslint/js";

const globals = Object.fromEntries(
  ["TextDecoder", "TextEncoder", "URL", "atob", "clearInterval", "clearTimeout", "console", "fetch", "performance", "process", "setInterval", "setTimeout"].map((name) => [name, "readonly"]),
);

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals },
    rules: {
      "eqeqeq": "error",
      "max-lines": ["error", 400],
      "max-params": ["error", 6],
      "no-implicit-coercion": "error",
      "no-restricted-properties": ["error", { object: "Math", property: "random", message: "Randomness comes from crypto." }],
      "no-shadow": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
    },
  },
];
