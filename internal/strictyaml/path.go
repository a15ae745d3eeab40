// SPDX-License-Identifier: Apache-2.0

package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// pathAt is the path of the value in JSON that ends at an offset, or whose bracket does, as in machines[3].addresses; empty for the whole
// document. Keys are the same path without the indexes of lists, a part each.
//
// encoding/json's errors name the fields of structs alone: which of a list's items is meant, and which of a map's, only the offset tells.
func pathAt(data []byte, offset int64) (path string, keys []string) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var around []container
	for {
		token, err := decoder.Token()
		if err != nil {
			return "", nil
		}
		bracket, _ := token.(json.Delim)
		if bracket == '}' || bracket == ']' {
			around = around[:len(around)-1]
			continue
		}
		if n := len(around) - 1; n >= 0 && !around[n].next(token) {
			continue // a key
		}
		if decoder.InputOffset() >= offset {
			return join(around)
		}
		if bracket != 0 {
			around = append(around, container{list: bracket == '[', index: -1})
		}
	}
}

// container is a list or an object around a value.
type container struct {
	list  bool
	index int // of the value in the list
	key   string
	named bool // the key of the value that comes next is known
}

// next moves on to the value that the token begins, and is false if the token is that value's key.
func (c *container) next(token json.Token) bool {
	switch {
	case c.list:
		c.index++
	case !c.named:
		c.key, _ = token.(string)
		c.named = true
		return false
	}
	c.named = false
	return true
}

func join(around []container) (path string, keys []string) {
	var b strings.Builder
	for _, c := range around {
		if c.list {
			fmt.Fprintf(&b, "[%d]", c.index)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(c.key)
		keys = append(keys, c.key)
	}
	return b.String(), keys
}
