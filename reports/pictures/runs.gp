# Memory of a rank over time, several runs.
set xlabel 'time (ms)'
set ylabel 'allocated memory (GiB)'
set xrange [0:zp_end]
set yrange [0:zp_top]
zp_line = zp_capacity <= zp_top ? zp_capacity : NaN
plot for [i = 1:int(zp_n)] $runs index i - 1 using 1:2 with steps lw 2 lc rgb zp_series[1 + (i - 1) % 8] \
         dt 1 + (i - 1) / 8 title zp_name[i], \
     zp_capacity > 0 ? zp_line : NaN with lines lc rgb '#c00000' lw 2 dt 2 \
         title (zp_capacity > 0 ? zp_capacity_text : '')
