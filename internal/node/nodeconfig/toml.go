// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// MergeTOML lays one TOML document over another: tables are merged, all else is replaced. The result has no comments.
func MergeTOML(under, over string) (string, error) {
	base, err := readTOML(under)
	if err != nil {
		return "", err
	}
	patch, err := readTOML(over)
	if err != nil {
		return "", err
	}
	newMerger().merge("", "", base, patch, true)
	return writeTOML(base)
}

// ReadTOML reads a TOML document. Its errors do not repeat what is in it.
func ReadTOML(text string) (map[string]any, error) { return readTOML(text) }

// WriteTOML writes one.
func WriteTOML(config map[string]any) (string, error) { return writeTOML(config) }

func readTOML(text string) (map[string]any, error) {
	config := map[string]any{}
	if _, err := toml.Decode(text, &config); err != nil {
		// The reader's own words repeat what it stumbled over, and that may be a registry's password.
		if problem, ok := errors.AsType[toml.ParseError](err); ok {
			return nil, fmt.Errorf("is not TOML: see line %d of it", problem.Position.Line)
		}
		return nil, errors.New("is not TOML")
	}
	return config, nil
}

func writeTOML(config map[string]any) (string, error) {
	var text strings.Builder
	encoder := toml.NewEncoder(&text)
	encoder.Indent = ""
	if err := encoder.Encode(config); err != nil {
		return "", fmt.Errorf("writing TOML: %w", err)
	}
	return text.String(), nil
}
