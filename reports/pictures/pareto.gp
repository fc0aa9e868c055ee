# Peak against step time: every point, the front, and the points worth naming.
set xlabel 'peak of a rank (GiB)'
set ylabel zp_time
set grid xtics ytics
set offsets graph 0.04, graph 0.04, graph 0.08, graph 0.04
if (zp_capacity > 0 && zp_capacity <= zp_top) {
    set arrow from zp_capacity, graph 0 to zp_capacity, graph 1 nohead lc rgb '#c00000' lw 2 dt 2
}
plot $points using ($3 == 1 ? $1 : NaN):2 with points pt 7 ps 1 lc rgb '#9a9a9a' title 'fits', \
     $points using ($3 == 0 ? $1 : NaN):2 with points pt 6 ps 1 lc rgb '#9a9a9a' \
         title 'does not fit', \
     $front using 1:2 with steps lw 2 lc rgb '#0072b2' title 'front', \
     $front using 1:2 with points pt 7 ps 1.2 lc rgb '#0072b2' notitle, \
     $fastest using 1:2 with points pt 9 ps 2 lc rgb '#d55e00' title zp_fastest, \
     $smallest using 1:2 with points pt 11 ps 2 lc rgb '#009e73' title zp_smallest, \
     $knee using 1:2 with points pt 13 ps 2.4 lc rgb '#e69f00' \
         title (zp_knee eq '' ? 'no knee' : zp_knee), \
     NaN with lines lc rgb '#c00000' lw 2 dt 2 title (zp_capacity > 0 ? zp_capacity_text : '')
