// SPDX-License-Identifier: Apache-2.0

// Package console has "muster console".
package console
