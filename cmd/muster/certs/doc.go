// SPDX-License-Identifier: Apache-2.0

// Package certs has the commands that show certificates and rotate authorities: certs, certs issued, certs rotate.
package certs
