# A boot sector that says "K" to the debug port: what a kernel does before its first line, in 64 bits with
# pages, writes to fresh pages and an instruction of BMI2 beside each other. A KVM that has to emulate
# (within a virtual machine) breaks off here, though firmware runs.
.code16
.globl _start
_start:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    lgdt descriptors_at
    movl %cr0, %eax
    orb $1, %al
    movl %eax, %cr0
    ljmp $8, $protected
.code32
protected:
    movw $16, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    # The first 2 MiB map to themselves.
    movl $0x10000, %edi
    xorl %eax, %eax
    movl $0x3000, %ecx
    cld
    rep stosb
    movl $0x11003, 0x10000
    movl $0x12003, 0x11000
    movl $0x83, 0x12000
    movl %cr4, %eax
    orl $0x20, %eax
    movl %eax, %cr4
    movl $0x10000, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80000000, %eax
    movl %eax, %cr0
    ljmp $24, $long_mode
.code64
long_mode:
    movl $3, %ecx
    movl $1, %ebx
    movl $0x90000, %r15d
    movl $200000, %esi
again:
    movl %esi, (%r15)
    shlx %ecx, %ebx, %eax
    addl $4096, %r15d
    andl $0xfffff, %r15d
    orl $0x80000, %r15d
    decl %esi
    jnz again
    cmpl $8, %eax
    jne stop
    movw $0x402, %dx
    movb $'K', %al
    outb %al, %dx
stop:
    hlt
    jmp stop
descriptors:
    .quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff, 0x00af9a000000ffff
descriptors_at:
    .word 31
    .long descriptors
.org 510
    .word 0xaa55
