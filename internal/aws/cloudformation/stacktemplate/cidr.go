// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
)

// cidr evaluates Fn::Cidr.
func (e *evaluation) cidr(c *call, at *path) (any, bool) {
	block, blockKnown, blockOK := e.text(c.args[0], at.index(0))
	count, countOK := e.number(c.args[1], at.index(1))
	bits, bitsOK := e.number(c.args[2], at.index(2))
	if !blockOK || !countOK || !bitsOK {
		return nil, false
	}
	if !blockKnown || count < 0 || bits < 0 {
		return Unknown{}, true
	}
	prefix, err := netip.ParsePrefix(block)
	if err != nil {
		e.add(at.index(0), "%s is not an address block such as 10.0.0.0/16", e.quoted(block, c.args[0]))
		return nil, false
	}
	blocks, problem := divide(prefix, count, bits)
	if problem != "" {
		e.add(at, "%s", problem)
		return nil, false
	}
	list := []any{}
	for _, block := range blocks {
		list = append(list, block.String())
	}
	return list, true
}

// number evaluates an argument that must be a whole number from 0. Returns -1 for a value that is not known before a
// resource is made.
func (e *evaluation) number(expression any, at *path) (int, bool) {
	text, known, ok := e.text(expression, at)
	if !known || !ok {
		return -1, ok
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		e.add(at, "%s is not a whole number", e.quoted(text, expression))
		return 0, false
	}
	return n, true
}

// divide returns the first blocks of a block that leave so many bits for hosts, or a problem.
func divide(block netip.Prefix, count, bits int) ([]netip.Prefix, string) {
	block = block.Masked()
	length := block.Addr().BitLen()
	switch {
	case count < 1 || count > MaxCidrs:
		return nil, fmt.Sprintf("the count %d is not between 1 and %d", count, MaxCidrs)
	case bits < 1 || bits > length:
		return nil, fmt.Sprintf("cidrBits %d is not between 1 and %d", bits, length)
	case length-bits < block.Bits():
		return nil, fmt.Sprintf("a block with %d host bits is larger than /%d", bits, block.Bits())
	}
	if room := length - bits - block.Bits(); room < 9 && count > 1<<room {
		return nil, fmt.Sprintf("a /%d has room for %d blocks of /%d, not for %d", block.Bits(), 1<<room, length-bits, count)
	}
	next := new(big.Int).SetBytes(block.Addr().AsSlice())
	step := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	blocks := make([]netip.Prefix, 0, count)
	for range count {
		bytes := make([]byte, length/8)
		address, _ := netip.AddrFromSlice(next.FillBytes(bytes))
		blocks = append(blocks, netip.PrefixFrom(address, length-bits))
		next.Add(next, step)
	}
	return blocks, ""
}
