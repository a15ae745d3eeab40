// SPDX-License-Identifier: Apache-2.0

// Package certs has the commands about certificates and authorities.
package certs
