// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"crypto/md5" //nolint:gosec // G501: SQS's checksum, which SDKs compare; nothing is proven by it
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/cloud/queuestore"
)

// attributeValue is an attribute of a message as requests and answers have it.
type attributeValue struct {
	DataType    string
	StringValue *string
	BinaryValue []byte
}

const maxAttributes = 10

// attributesOf checks the attributes of a message.
func attributesOf(values map[string]attributeValue) (map[string]queuestore.Attribute, error) {
	if len(values) == 0 {
		return nil, nil
	}
	if len(values) > maxAttributes {
		return nil, awsfault.Errorf(invalidParameter, "Number of message attributes [%d] exceeds the allowed maximum [%d].", len(values), maxAttributes)
	}
	all := map[string]queuestore.Attribute{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
		if name == "" || len(name) > 256 || strings.Trim(name, letters) != "" {
			return nil, awsfault.Errorf(invalidParameter, "The message attribute name %.100q is invalid. Attribute name can contain A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.) characters.", name)
		}
		kind, _, _ := strings.Cut(v.DataType, ".")
		switch {
		case (kind == "String" || kind == "Number") && v.StringValue != nil && *v.StringValue != "" && v.BinaryValue == nil:
			all[name] = queuestore.Attribute{Type: v.DataType, Text: *v.StringValue}
		case kind == "Binary" && len(v.BinaryValue) > 0 && v.StringValue == nil:
			all[name] = queuestore.Attribute{Type: v.DataType, Binary: v.BinaryValue}
		default:
			return nil, awsfault.Errorf(invalidParameter, "The message attribute '%.100s' with type '%.40s' must use a value of that type: String and Number have StringValue, Binary has BinaryValue", name, v.DataType)
		}
	}
	return all, nil
}

// shownAttributes are those of a message that a receiver asked for: by their names, by "All" or ".*", or by what they
// begin with, as in "foo.*".
func shownAttributes(all map[string]queuestore.Attribute, asked []string) map[string]queuestore.Attribute {
	shown := map[string]queuestore.Attribute{}
	for name, a := range all {
		if slices.ContainsFunc(asked, func(want string) bool {
			prefix, many := strings.CutSuffix(want, ".*")
			return want == "All" || want == name || many && strings.HasPrefix(name, prefix)
		}) {
			shown[name] = a
		}
	}
	return shown
}

func valuesOf(all map[string]queuestore.Attribute) map[string]attributeValue {
	if len(all) == 0 {
		return nil
	}
	values := map[string]attributeValue{}
	for name, a := range all {
		v := attributeValue{DataType: a.Type, BinaryValue: a.Binary}
		if a.Binary == nil {
			v.StringValue = &a.Text
		}
		values[name] = v
	}
	return values
}

func md5Of(text []byte) string {
	sum := md5.Sum(text) //nolint:gosec // G401: see the import
	return hex.EncodeToString(sum[:])
}

// md5OfAttributes is SQS's checksum of attributes (Developer guide, "Calculating the MD5 message digest for message
// attributes"); empty without attributes.
func md5OfAttributes(all map[string]queuestore.Attribute) string {
	if len(all) == 0 {
		return ""
	}
	sum := md5.New() //nolint:gosec // G401: see the import
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a := all[name]
		counted(sum, []byte(name))
		counted(sum, []byte(a.Type))
		if a.Binary != nil {
			sum.Write([]byte{2})
			counted(sum, a.Binary)
		} else {
			sum.Write([]byte{1})
			counted(sum, []byte(a.Text))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func counted(sum hash.Hash, text []byte) {
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(text))) //nolint:gosec // G115: a message has 1 MiB at most
	sum.Write(length[:])
	sum.Write(text)
}
