// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

// With other flags nothing would come from the cache, and four minutes would vet nothing.
func TestFlagsAreThoseOfTheBuild(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if want := "AS_BUILT := env CGO_ENABLED=0 GOFLAGS='" + goFlags + "'\n"; !strings.Contains(string(makefile), want) {
		t.Errorf("the Makefile has no line %q", want)
	}
}

func TestOwner(t *testing.T) {
	modules := []string{".", "images", "images/traefik"}
	for file, want := range map[string]string{
		"go.mod":                  ".",
		"internal/a/a.go":         ".",
		"images/pause/main.go":    "images",
		"images/traefik/go.mod":   "images/traefik",
		"images/traefik/x/y/z.go": "images/traefik",
	} {
		if got := owner(modules, file); got != want {
			t.Errorf("%s belongs to %q, want %q", file, got, want)
		}
	}
	if got := owner([]string{"images"}, "internal/a/a.go"); got != "" {
		t.Errorf("a file outside of every module belongs to %q", got)
	}
}
