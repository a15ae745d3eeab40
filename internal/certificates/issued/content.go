// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The keys of a segment's data.
const (
	versionKey      = "version"
	certificatesKey = "certificates"
	keysKey         = "keys"

	version = "1"
	// maxData is what the API server lets a ConfigMap have.
	maxData = 1 << 20
)

// content is what a segment holds, in plain values.
type content struct {
	entries []Entry
	groups  []group
}

// read reads the data of a ConfigMap. It returns all lines that can be understood, and the others apart.
func read(cm *corev1.ConfigMap) (c content, problems []string) {
	size := 0
	for name, text := range cm.Data {
		size += len(name) + len(text)
		if name != versionKey && name != certificatesKey && name != keysKey {
			problems = append(problems, fmt.Sprintf("data.%s is not known here", name))
		}
	}
	slices.Sort(problems)
	for _, name := range slices.Sorted(maps.Keys(cm.BinaryData)) {
		problems = append(problems, fmt.Sprintf("binaryData.%s is not known here", name))
	}
	switch v, ok := cm.Data[versionKey]; {
	case size > maxData:
		return content{}, append(problems, fmt.Sprintf("it has %d bytes; at most %d are read", size, maxData))
	case !ok:
		problems = append(problems, "data.version is missing")
	case v != version: // its lines may mean something else
		return content{}, append(problems, fmt.Sprintf("it has version %.20q; version %s is known here", v, version))
	}
	bad := func(where string, number int, err error) {
		problems = append(problems, fmt.Sprintf("data.%s, line %d: %v", where, number, err))
	}
	seen := map[string]bool{}
	eachLine(cm.Data[certificatesKey], func(number int, line string) error {
		e, err := parseEntry(line)
		switch {
		case err != nil:
			return err
		case seen[e.UID]:
			return fmt.Errorf("duplicate uid %s", e.UID)
		}
		seen[e.UID] = true
		c.entries = append(c.entries, e)
		return nil
	}, func(number int, err error) { bad(certificatesKey, number, err) })
	eachLine(cm.Data[keysKey], func(number int, line string) error {
		g, err := parseGroup(line)
		if err == nil {
			c.groups = append(c.groups, g)
		}
		return err
	}, func(number int, err error) { bad(keysKey, number, err) })
	return c, problems
}

func eachLine(text string, parse func(int, string) error, bad func(int, error)) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, whole := strings.CutSuffix(line, "\n")
		switch {
		case !whole:
			bad(number, fmt.Errorf("it has no end"))
		case len(line) > maxLine:
			bad(number, fmt.Errorf("it has %d bytes; a line has at most %d", len(line), maxLine))
		default:
			if err := parse(number, line); err != nil {
				bad(number, err)
			}
		}
	}
}

// data is the text of a segment.
func (c content) data() map[string]string {
	var keys strings.Builder
	var certificates []byte
	for n, e := range c.entries {
		certificates = append(e.append(certificates), '\n')
		if n == 0 {
			certificates = slices.Grow(certificates, len(c.entries)*(len(certificates)+len(certificates)/8)) // they are much alike
		}
	}
	for _, g := range c.groups {
		for part := range slices.Chunk(g.keys, keysPerLine) {
			g.keys = part
			keys.WriteString(g.line() + "\n")
		}
	}
	return map[string]string{versionKey: version, certificatesKey: string(certificates), keysKey: keys.String()}
}

// size is how many bytes data has.
func size(data map[string]string) int {
	n := 0
	for name, text := range data {
		n += len(name) + len(text)
	}
	return n
}
