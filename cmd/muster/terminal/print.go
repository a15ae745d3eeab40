// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"encoding/json"
	"io"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/platform/termsafe"
)

// PrintData writes a value as JSON or YAML.
func PrintData(w io.Writer, format string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if format == FormatYAML {
		if raw, err = yaml.JSONToYAML(raw); err != nil {
			return err
		}
	} else {
		raw = append(termsafe.JSON(raw), '\n')
	}
	_, err = w.Write(raw)
	return err
}
