// SPDX-License-Identifier: Apache-2.0

package prefilter

import (
	"slices"
	"strings"
)

// message is the store's name of @message. An event has a message even if that is empty: it is never missing.
const message = "_msg"

// storeNames are fields that the store uses itself. It keeps a field of an event with such a name under the name with an @ before.
var storeNames = []string{"_time", "_msg", "_stream", "_stream_id"}

// StoreField returns the name in the log store of a field of the query language. The second result is false for the fields that
// are made of what the store has: @timestamp, @ingestionTime and @ptr.
func StoreField(name string) (string, bool) {
	switch {
	case name == "@timestamp" || name == "@ingestionTime" || name == "@ptr":
		return "", false
	case name == "@message":
		return message, true
	case slices.Contains(storeNames, name):
		return "@" + name, true
	default:
		return name, true
	}
}

// QueryField returns the name in the query language of a field that the log store keeps of an event, by its name there.
func QueryField(store string) string {
	if name, at := strings.CutPrefix(store, "@"); at && slices.Contains(storeNames, name) {
		return name
	}
	return store
}
