// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"os"
	"regexp"
	"strings"

	"muster.dev/muster/internal/node/nodeconfig"
)

// Bounds of a quotation from a log.
const (
	quotedLines = 5
	quotedBytes = 600
)

// klogHeader is the time and the process at the beginning of a line of Kubernetes' programs: level, month and day,
// time, thread.
var klogHeader = regexp.MustCompile(`^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ `)

// between stands between lines that are quoted.
const between = " / "

// tail is the last lines of a file after an offset, so many at most, in one line and without secrets; empty if there
// are none.
func tail(path string, begin int64, most int) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	const window = 8 << 10
	if info, err := file.Stat(); err == nil && info.Size()-begin > window {
		begin = info.Size() - window
	}
	raw, err := io.ReadAll(io.LimitReader(io.NewSectionReader(file, begin, window), window))
	if err != nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(nodeconfig.WithoutSecrets(string(raw))) {
		if line = strings.TrimSpace(klogHeader.ReplaceAllString(line, "")); line != "" {
			lines = append(lines, line)
		}
	}
	text := strings.Join(lines[max(0, len(lines)-most):], between)
	if len(text) > quotedBytes {
		text = "…" + strings.ToValidUTF8(text[len(text)-quotedBytes:], "")
	}
	return text
}

// lastLines puts them behind a sentence.
func lastLines(lines string) string {
	if lines == "" {
		return "; it printed nothing"
	}
	return "; its last lines: " + lines
}
