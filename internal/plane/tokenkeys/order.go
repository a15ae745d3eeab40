// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	kjson "sigs.k8s.io/json"
)

// A signer answers these by mTLS: a GET of the list of public keys ([FormatPublic]), and a POST of an [Order], whose
// answer is the list that is then.
const (
	PathKeys   = "/v1/keys"
	PathRotate = "/v1/rotate"
	// MaxOrder bounds an order, in bytes.
	MaxOrder = 1 << 10
)

// Refused is why a signer does not carry an order out. It will not if it is asked again, either.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return r.Reason }

// Order tells a signer to add a key. An order that is given twice adds one key.
type Order struct {
	// After is the id of the last key that the sender knows.
	After string
	// Notice is how long the new key is published before it signs.
	Notice time.Duration
}

type orderRecord struct {
	After  string `json:"after"`
	Notice string `json:"notice"`
}

// FormatOrder is an order as it is sent.
func FormatOrder(o Order) ([]byte, error) {
	return json.Marshal(orderRecord{After: o.After, Notice: o.Notice.String()})
}

// ParseOrder reads an order strictly.
func ParseOrder(raw []byte) (Order, error) {
	if len(raw) > MaxOrder {
		return Order{}, fmt.Errorf("it has more than %d bytes", MaxOrder)
	}
	var record orderRecord
	strict, err := kjson.UnmarshalStrict(raw, &record)
	switch {
	case err != nil:
		return Order{}, err
	case len(strict) > 0:
		return Order{}, strict[0]
	case record.After == "":
		return Order{}, errors.New("after: must be the id of a key")
	}
	notice, err := time.ParseDuration(record.Notice)
	if err != nil {
		return Order{}, fmt.Errorf("notice: %w", err)
	}
	return Order{After: record.After, Notice: notice}, nil
}
